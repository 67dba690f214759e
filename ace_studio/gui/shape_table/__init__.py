"""The shape-set table: its cells as data (`rows`), the verdicts in words (`verdicts`), and the widget (`cells`)."""
