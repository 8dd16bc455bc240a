"""Tests of agents, replay and trainer."""
