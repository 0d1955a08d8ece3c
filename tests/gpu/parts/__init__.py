"""The parts of tests/gpu/run, the most valuable first, with the seconds that each may take: at most 480, 1500 in all.

A part is a function of a Lab (what can be run) and a Record (what was found). One more is one more line here.
"""
from . import numerics, profile, resources, speed

PARTS = {
    "environment": (resources.environment, 50),
    "smoke": (numerics.smoke, 100),
    "resume": (numerics.resume, 150),
    "precision": (numerics.precision, 130),
    "graphs": (numerics.graphs, 70),
    "memory": (resources.memory, 100),
    "nccl": (resources.nccl, 40),
    "profile": (profile.profile, 50),
    "speed-gpt": (speed.gpt, 360),
    "speed-resnet": (speed.resnet, 140),
    "speed-mlp": (speed.mlp, 110),
    "speed-startup": (speed.startup, 70),
    "speed-checkpoint": (speed.checkpoint, 130),
}
