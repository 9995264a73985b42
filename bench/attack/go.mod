module edge.svc/attack

go 1.26.0
