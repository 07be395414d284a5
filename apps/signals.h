// Signals that end the program, and how it ends then.
#pragma once

// Thrown by a command that ended early and has reported it: the program ends with this status and no further output.
struct Interrupted {
  int status;
};

// Returns the exit status of a program that a signal ended, as shells state it.
constexpr int status_of_signal(int number) { return 128 + number; }

// Makes a file size limit (SIGXFSZ) an error of the call that writes, and a file that shrinks while it is read (SIGBUS)
// one line of error instead of a crash. Called before anything else.
void prepare_signals();

// Starts to catch Ctrl-C, SIGTERM, SIGHUP and SIGUSR1, except those that are ignored: after the first one,
// interrupted() returns true and stop_if_interrupted() throws Interrupted. The second one ends the program, unless it
// is a SIGHUP, which a terminal that closes sends twice.
void listen_for_interrupts();
// A closed pipe counts as such a signal.
void listen_for_closed_pipes();
bool interrupted();
void stop_if_interrupted();
// Returns what a command throws that was stopped: by a signal, or else by another process.
Interrupted interruption();

// From now on the first signal ends the program at once and prints this line, which outlives it; nullptr: no longer.
void end_at_once(const char* line);
