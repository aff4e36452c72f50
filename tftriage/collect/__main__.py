"""``python -m tftriage.collect``: see runner."""

from .runner import main

if __name__ == "__main__":
    main()
