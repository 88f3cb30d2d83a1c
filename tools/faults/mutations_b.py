"""Mutations for the faults B088 to B200."""

from __future__ import annotations

from tools.faults.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = ()
