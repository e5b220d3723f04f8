"""Objective and accuracy against time for the polynomial kernel of degree 3."""

from __future__ import annotations

from paper.experiments import polynomial
from paper.sections import Page, convergence


def show(page: Page) -> str:
    return convergence.show(page, polynomial)


def conclude(page: Page) -> str:
    return convergence.conclude(page, polynomial)
