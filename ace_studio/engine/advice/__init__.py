"""Advice after a run: rules look at what was found, and the best three cards are kept."""

from ace_studio.engine.advice.cards import advise
from ace_studio.engine.advice.facts import Facts
