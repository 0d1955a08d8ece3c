{ seed: std.extVar("seed") }
