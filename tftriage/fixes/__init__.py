"""Repairs: plan -> preview -> apply -> verify -> undo.

A plan is a frozen value; ``preview`` shows it, ``effects`` alone carries it out, ``journal`` writes down what is
about to happen before it happens, ``undo`` takes it back. ``catalogue`` lists the repairs there are.
"""
