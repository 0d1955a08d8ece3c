{ seed: sead }
