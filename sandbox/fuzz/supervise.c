// What the supervisor says once the server runs. The first byte is how the stream is cut.
#include "../init/supervise.c"

#include "harness.h"

static void parse(void) {
  const struct watch watch = {.server = 2, .failures = -1};
  while (rung == CHANNEL_UP) obey(&watch);
}

void fuzz_supervise(void) {
  if (input.left == 0) return;
  input.step = 1 + input.at[0] % 16;
  input.at++;
  input.left--;
  rung = CHANNEL_UP;
  held_bytes = 0;
  if (outlives(parse))
    expect(input.left == 0, "a channel that is lost before its end");
  else
    expect(ended_with == EXIT_SETUP || ended_with == EXIT_SIGNAL + SIGKILL,
           "another end than refusal or kill");
}
