"""What a configuration says: TOML text to the scenarios of its variants and points, every number with its
origin.
"""
