"""Mutations for the faults B001 to B087."""

from __future__ import annotations

from tools.faults.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = ()
