// What a server asks the resolver, in one datagram, or over TCP: an odd first byte says so, and how that is
// cut.
#include "../init/resolver-sockets.c"

#include "harness.h"

static void expect_answer(const unsigned char *query, const unsigned char *answer, size_t length) {
  expect(length >= 12 && length <= ANSWER_MAX, "an answer shorter than a head or longer than 512 bytes");
  expect(query == NULL || memcmp(answer, query, 2) == 0, "an answer with another id");
  expect((answer[2] & 0x80) != 0, "an answer that is none");
  expect(answer[6] == 0 && answer[7] <= 1, "an answer with more than one record");
  expect(answer[7] == 0 || (answer[3] & 15) == 0, "a refusal with an address");
}

static void expect_framed_answer(int fd, const char *bytes, size_t length) {
  (void)fd;
  const unsigned char *answer = (const unsigned char *)bytes;
  expect(length > 2 && (size_t)(answer[0] << 8 | answer[1]) == length - 2,
         "an answer of another length than it says");
  expect_answer(NULL, answer + 2, length - 2);
}

static void ask_over_tcp(void) {
  on_written = expect_framed_answer;
  clients[0] = (struct client){.fd = 1 << 20};  // closing it closes nothing
  while (clients[0].fd != 0) serve_resolver_client(0);
}

static void ask_once(void) {
  const unsigned char *query = exact(input.at, input.left);
  unsigned char *answer = exact((unsigned char[ANSWER_MAX]){0}, ANSWER_MAX);
  struct refused_question refused;
  size_t bytes = answer_query(query, input.left, answer, &refused);
  expect(strlen(refused.name) <= SHOWN_MAX, "a name of more than 253 letters");
  expect(strpbrk(refused.name, " \n\r\t") == NULL, "a name that forges a line");
  if (bytes > 0) expect_answer(query, answer, bytes);
}

void fuzz_resolver(void) {
  static struct egress_orders orders = {.door = "/d",
                                        .proxy_port = 1,
                                        .pool = 4,
                                        .grant_count = 2,
                                        .grants = {{"api.example.test", 443}, {"*.wild.example.test", 443}}};
  if (input.left == 0 || input.left > 2 + QUERY_MAX) return;
  memset(entries, 0, entry_count * sizeof entries[0]);
  listener_count = entry_count = 0;
  plan_names(&orders);
  uint8_t way = input.at[0];
  input.at++;
  input.left--;
  if (way % 2 == 0) {
    ask_once();
  } else {
    input.step = 1 + way / 2U;
    ask_over_tcp();
  }
}
