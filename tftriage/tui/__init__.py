"""The screen. The only place that imports Textual; it calls the same functions as the command line."""
