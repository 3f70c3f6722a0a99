// Package objstoretest is the acceptance suite of a warehouse's storage, and a
// recording file system that shows what of a local warehouse survives a power cut.
//
// [Run] states what every kind of store must do; a kind that passes it may carry
// tables. [Recorder] stands between a local store and the operating system.
package objstoretest
