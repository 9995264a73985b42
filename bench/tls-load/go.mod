module bench/tls-load

go 1.26.0
