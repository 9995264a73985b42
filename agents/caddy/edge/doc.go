// Package edge takes requests through the stages in their order and sends the responses.
//
// order.go has the one list of stages. A panic is contained to its stage.
package edge
