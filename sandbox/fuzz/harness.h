// What the harnesses share: the bytes of one input, and a way back from where the process would have ended.
#ifndef SALLYPORT_HARNESS_H
#define SALLYPORT_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What reads of a socket or of stdin give until it is used up, at most `step` bytes at a time; then the
// stream has ended.
struct input {
  const uint8_t *at;
  size_t left, step;
};
extern struct input input;

// Runs `parse`; false where it ended the process instead of returning. Its exit status is in `ended_with`
// then.
bool outlives(void (*parse)(void));
extern int ended_with;

// Memory of exactly this size, until the input is over: one byte beyond it is found.
void *exact(const void *bytes, size_t length);

// A line that was written or sent: by default it must be one line of printable text, with its end.
extern void (*on_written)(int fd, const char *bytes, size_t length);

// Ends the run as a finding.
void expect(bool holds, const char *what);

// Whether the input is a row of frames.
extern bool is_framed;

// One for each source of bytes; the name of the program chooses, as in `fuzz-gate`.
void fuzz_answer(void);
void fuzz_connects(void);
void fuzz_container(void);
void fuzz_gate(void);
void fuzz_guard(void);
void fuzz_orders(void);
void fuzz_refusals(void);
void fuzz_resolver(void);
void fuzz_supervise(void);

#endif
