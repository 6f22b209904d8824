"""Distinct English-like text by seed: the same seed gives the same text, two seeds share hardly a sentence."""

import random
from collections.abc import Iterator


def _phrases(text: str) -> list[str]:
    return text.split("|")


_SUBJECTS = _phrases(
    "the harbour master|a retired surveyor|the night train|our laboratory|the northern valley|an old lighthouse|"
    "the city council|a young violinist|the glass factory|the river ferry|an unknown cartographer|the village bakery|"
    "the research vessel|a travelling theatre|the mountain hut|the botanical garden|a patient engineer|the archive|"
    "the wooden bridge|a flock of starlings|the printing house|the observatory|an apprentice clockmaker|the orchard|"
    "the tram depot|a salt merchant|the museum|the weather station|an island school|the quarry"
)
_VERBS = _phrases(
    "measured|repaired|forgot|described|carried|painted|replaced|counted|discovered|protected|sold|rebuilt|followed|"
    "weighed|opened|copied|imagined|delivered|abandoned|restored|drew|tested|borrowed|planted|recorded|signalled"
)
_OBJECTS = _phrases(
    "seven copper kettles|the longest winter|a map of the tunnels|every second window|the missing ledger|a bitter tea|"
    "three hundred lanterns|the eastern wall|a theory of tides|the last passenger|an early violin|the frozen canal|"
    "a catalogue of moths|the price of timber|two broken compasses|the festival banners|a colony of bees|the anchor|"
    "the second edition|a field of barley|the echo of the bells|an iron staircase|the registry of births|a thin fog|"
    "the distance to the sea|a bundle of letters|the oldest oak|an unfinished song|the rules of the game|a blue door"
)
_ADVERBS = _phrases(
    "before sunrise|with unusual care|during the second flood|without a licence|for the third time|in complete silence|"
    "against all advice|between two storms|on a borrowed bicycle|under a paper roof|after the harvest|by candlelight|"
    "in the spring of 1911|near the old customs house|at the request of the mayor|beyond the marshes|for a small fee|"
    "while the others slept|along the disused railway|in front of forty witnesses|with a pencil and string"
)
_JOINS = ("and", "but", "so", "while", "because", "although", "until", "where")


def sentences(seed: int | str) -> Iterator[str]:
    """Sentences without end."""
    pick = random.Random(seed).choice
    while True:
        first = f"{pick(_SUBJECTS)} {pick(_VERBS)} {pick(_OBJECTS)} {pick(_ADVERBS)}"
        second = f"{pick(_SUBJECTS)} {pick(_VERBS)} {pick(_OBJECTS)}"
        yield f"{first[0].upper()}{first[1:]}, {pick(_JOINS)} {second}."


def paragraph(seed: int | str, count: int = 5) -> str:
    """A paragraph of `count` sentences of about 20 words."""
    source = sentences(seed)
    return " ".join(next(source) for _ in range(count))


def title(seed: int | str) -> str:
    pick = random.Random(f"title {seed}").choice
    return f"{pick(_OBJECTS)} and {pick(_SUBJECTS)}".capitalize()
