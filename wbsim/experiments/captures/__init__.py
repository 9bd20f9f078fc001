"""Captures of a real kernel's block layer: read them, replay them, make them."""
