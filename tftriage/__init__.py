"""Triage of TensorFlow-GPU machines: find the cause, prove it, repair it, take the repair back."""

__version__ = "0.1.0"
