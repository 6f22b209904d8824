"""What is deployed: five services, each a shell around one stage of trawl, and what they share."""
