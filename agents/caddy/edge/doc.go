// Package edge takes requests through the stages in their order and sends the answers.
//
// The order of stages stands in one list, in order.go. A panic is contained to its stage.
package edge
