// What a container's init is told before it closes itself off.
#include "../init/container.c"

#include "harness.h"

static struct setting setting;

static void parse(void) { setting = read_setting(); }

void fuzz_container(void) {
  if (!outlives(parse)) {
    expect(ended_with == EXIT_SETUP, "another end than that of a refusal");
    return;
  }
  expect(setting.uid != 0 && setting.gid != 0, "root");
  exact(setting.filter, setting.filter_bytes);
}
