module bench/endless-bodies

go 1.26.0
