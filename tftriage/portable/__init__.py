"""What travels beside the collector in its one-file form: redaction, and the writing of a case.

Runs on Python 3.6 and newer with the standard library alone, on a student's machine as well as here; imports nothing
else of the project but the collector, and that only to launch it.
"""
