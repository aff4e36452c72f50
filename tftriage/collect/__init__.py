"""OBSERVE. Launched as its own process (``python -m tftriage.collect``), never imported for a target.

Runs on Python 3.6 and newer with the standard library; pefile, pynvml and psutil are used when they are there.
Collectors record what they see and judge nothing.
"""
