"""The parts of tests/gpu/run, the most valuable first, with the time that each may take: at most 480 s.

A part is a function of a Lab (what can be run) and a Record (what was found). One more is one more line here.
"""
from typing import Callable, NamedTuple

from . import language, numerics, profile, resources, speed

START_S = 8  # of a program that loads LibTorch for CUDA, cuBLAS and cuDNN: 4 to 8 on a fast disk


class Part(NamedTuple):
    work: Callable
    starts: int  # of such programs, at most; tests/gpu/run checks it
    seconds: int  # beside them

    @property
    def budget_s(self):
        return self.starts * START_S + self.seconds


PARTS = {
    "environment": Part(resources.environment, 1, 30),
    "language-models": Part(language.models, 12, 20),
    "language-rows": Part(language.rows, 12, 20),
    "language-adapters": Part(language.adapters, 18, 20),
    "language-commands": Part(language.commands, 7, 15),
    "smoke": Part(numerics.smoke, 12, 20),
    "resume": Part(numerics.resume, 18, 30),
    "precision": Part(numerics.precision, 13, 60),
    "graphs": Part(numerics.graphs, 13, 25),
    "memory": Part(resources.memory, 9, 40),
    "nccl": Part(resources.nccl, 4, 20),
    "profile": Part(profile.profile, 2, 35),
    "speed-gpt": Part(speed.gpt, 10, 150),
    "speed-gpt-largest": Part(speed.gpt_largest, 16, 210),
    "speed-resnet": Part(speed.resnet, 13, 40),
    "speed-mlp": Part(speed.mlp, 10, 40),
    "speed-startup": Part(speed.startup, 6, 30),
    "speed-checkpoint": Part(speed.checkpoint, 4, 98),
}

ALL_S = sum(part.budget_s for part in PARTS.values())
