// What a daemon answers to the shim that an MCP host runs.
#include "../init/shim.c"

#include "harness.h"

static struct buffer down;
static bool is_asked;

static void parse(void) {
  struct json result, value;
  char session[NAME_MAX_BYTES + 1];
  long status;
  size_t bytes;
  if (!ask(1 << 20, "session/attach", "{\"server\":\"files\"}", &down, RESULT_MS, &bytes)) return;
  is_asked = true;
  const char *line = exact(down.bytes, bytes);
  expect_result((struct json){.at = line, .end = line + bytes}, &result);
  expect(result.at >= line && result.at <= result.end && result.end <= line + bytes,
         "a result out of its line");
  if (json_member(result, "session", &value) && json_text(value, session, sizeof session))
    expect(strlen(session) <= NAME_MAX_BYTES, "a session's name that is too long");
  if (json_member(result, "status", &value)) (void)json_integer(value, &status);
}

void fuzz_answer(void) {
  down.start = down.end = 0;
  is_asked = false;
  if (!outlives(parse)) expect(ended_with > 0 && ended_with <= 8, "a failure without a status");
}
