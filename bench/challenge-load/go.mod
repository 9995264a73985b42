module bench/challenge-load

go 1.26.0
