"""Start the independent counters as a process of their own: `python …/proof/sink.py --folder F`.

Run by path, so that only this folder is on the import path: `counters` is then a package of its
own and the application beside it is out of reach. What it prints and takes: counters/server.py.
"""

from importlib import import_module

if __name__ == "__main__":
    import_module("counters.server").main()
