"""The real servers that Trawl's services need, as local processes: installed, started, watched and stopped.

server.py       what all have in common
servers.py      one class a server: Redis, Kafka, schema registry, OpenSearch, Prometheus
process.py      a process that is ours: started once, found again, stopped alone
guard.py        ends what a killed test run leaves behind
packages.py     what they are made of: pinned artifacts with their checksums, and Debian packages
stack.py        all of them and the five services, with their ports
__main__.py     `python -m devstack up | down | ps | logs`
"""
