// Signals as a fresh process has them: exec inherits dispositions and masks, so both are set here.
#include "init.h"

#include <errno.h>
#include <signal.h>

void block_all_signals(void) {
  sigset_t all;
  sigfillset(&all);
  if (sigprocmask(SIG_SETMASK, &all, NULL) != 0) die("signals", "mask", errno);
}

// Every disposition back to default, then nothing blocked. The C library refuses its own two, rightly.
void reset_signals(void) {
  for (int number = 1; number <= SIGRTMAX; number++) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  if (sigprocmask(SIG_SETMASK, &none, NULL) != 0) die("signals", "mask", errno);
}
