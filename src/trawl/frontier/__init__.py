"""The frontier stage: admission, priority, pacing, retries."""
