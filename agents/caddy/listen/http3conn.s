// A file of assembly lets the compiler take a function without a body: see newServerConn.
