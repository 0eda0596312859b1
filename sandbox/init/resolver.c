// The sandbox's resolver as a function: from the bytes of one query to those of its answer. It asks nobody.
//
// Listed names have one address (type A) and nothing else: every other type is an answer without data. Every other name
// does not exist, which each client library takes at once; musl's waits for a better answer where it reads REFUSED.
// Nothing is read that a length in the packet did not first prove to be there.
#include <string.h>

#include "egress.h"

enum { HEAD_BYTES = 12, NAME_WIRE_MAX = 255, LABEL_MAX = 63, UDP_PAYLOAD = 1232 };
enum { NOERROR = 0, FORMERR = 1, SERVFAIL = 2, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5, BADVERS = 16 };
enum { TYPE_A = 1, TYPE_SOA = 6, TYPE_OPT = 41, TYPE_IXFR = 251, TYPE_AXFR = 252, TYPE_ANY = 255, CLASS_IN = 1, CLASS_ANY = 255 };

struct reader {
  const unsigned char *bytes;
  size_t length, at;
};

struct question {
  char host[NAME_WIRE_MAX + 1];  // lower case, dots between labels
  size_t host_length;
  bool is_plain;  // only letters, digits, hyphens and underscores in its labels
  uint16_t type, class;
  size_t end;  // where it ends in the query
};

static bool read_u16(struct reader *reader, uint16_t *value) {
  if (reader->length - reader->at < 2) return false;
  *value = (uint16_t)(reader->bytes[reader->at] << 8 | reader->bytes[reader->at + 1]);
  reader->at += 2;
  return true;
}

static bool skip(struct reader *reader, size_t bytes) {
  if (reader->length - reader->at < bytes) return false;
  reader->at += bytes;
  return true;
}

static bool is_plain_byte(unsigned char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
         byte == '-' || byte == '_';
}

static char lower(unsigned char byte) { return (char)(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte); }

// Writes what people may read of a name; a dot inside a label is escaped, as every byte of no host name is.
static void show_byte(struct refused_question *shown, size_t *at, unsigned char byte) {
  static const char digits[] = "0123456789abcdef";
  size_t need = is_plain_byte(byte) ? 1 : 4;
  if (*at + need > SHOWN_MAX) return;
  if (need == 1) {
    shown->name[(*at)++] = (char)byte;
  } else {
    const char escaped[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    memcpy(shown->name + *at, escaped, sizeof escaped);
    *at += sizeof escaped;
  }
}

// One name of labels only: in a question nothing stands before it that a pointer could point to.
static bool read_name(struct reader *reader, struct question *question, struct refused_question *shown) {
  size_t wire = 1, shown_at = 0;
  question->is_plain = true;
  question->host_length = 0;
  for (;;) {
    if (reader->at >= reader->length) return false;
    size_t label = reader->bytes[reader->at++];
    if (label == 0) break;
    wire += label + 1;
    if (label > LABEL_MAX || wire > NAME_WIRE_MAX || reader->length - reader->at < label) return false;
    if (question->host_length > 0) {
      question->host[question->host_length++] = '.';
      if (shown_at < SHOWN_MAX) shown->name[shown_at++] = '.';
    }
    for (size_t index = 0; index < label; index++) {
      unsigned char byte = reader->bytes[reader->at++];
      question->is_plain &= is_plain_byte(byte);
      question->host[question->host_length++] = lower(byte);
      show_byte(shown, &shown_at, byte);
    }
  }
  if (shown_at == 0) shown->name[shown_at++] = '.';
  shown->name[shown_at] = '\0';
  return true;
}

// A record's owner may be compressed; the two bytes of a pointer end it, and are not followed.
static bool skip_name(struct reader *reader) {
  for (;;) {
    if (reader->at >= reader->length) return false;
    unsigned char label = reader->bytes[reader->at++];
    if (label == 0) return true;
    if ((label & 0xc0) == 0xc0) return skip(reader, 1);
    if (label > LABEL_MAX || !skip(reader, label)) return false;
  }
}

struct edns {
  bool is_there;
  uint8_t version;
};

static bool read_records(struct reader *reader, unsigned count, struct edns *edns) {
  for (unsigned index = 0; index < count; index++) {
    size_t owner = reader->at;
    uint16_t type, payload, ttl_high, ttl_low, data;
    if (!skip_name(reader) || !read_u16(reader, &type) || !read_u16(reader, &payload) ||
        !read_u16(reader, &ttl_high) || !read_u16(reader, &ttl_low) || !read_u16(reader, &data) ||
        !skip(reader, data))
      return false;
    if (type != TYPE_OPT) continue;
    if (edns->is_there || reader->bytes[owner] != 0) return false;
    *edns = (struct edns){.is_there = true, .version = (uint8_t)(ttl_high & 0xff)};
  }
  return true;
}

static size_t put(unsigned char *answer, size_t at, const void *bytes, size_t length) {
  memcpy(answer + at, bytes, length);
  return at + length;
}

struct reply {
  unsigned code;
  bool has_address;
  struct in_addr address;
  const struct question *question;  // NULL where it could not be read
  struct edns edns;
};

static size_t write_answer(const unsigned char *query, const struct reply *reply, unsigned char *answer) {
  // Says for how long there is nothing.
  bool has_authority = reply->code == NXDOMAIN || (reply->code == NOERROR && !reply->has_address);
  size_t question_bytes = reply->question == NULL ? 0 : reply->question->end - HEAD_BYTES;
  const unsigned char head[HEAD_BYTES] = {
      query[0],
      query[1],
      // Answer, the query's opcode, authoritative, recursion as it was desired.
      (unsigned char)(0x80 | (query[2] & 0x79) | 0x04),
      (unsigned char)(0x80 | (reply->code & 15)),
      0,
      reply->question != NULL,
      0,
      reply->has_address,
      0,
      has_authority,
      0,
      reply->edns.is_there,
  };
  size_t at = put(answer, 0, head, sizeof head);
  // Byte for byte, with the letters' case: resolvers compare it to know their answer.
  at = put(answer, at, query + HEAD_BYTES, question_bytes);
  if (reply->has_address) {
    const unsigned char record[] = {0xc0, HEAD_BYTES, 0, TYPE_A, 0, CLASS_IN, 0, 0, 0, TTL_S, 0, 4};
    at = put(answer, at, record, sizeof record);
    at = put(answer, at, &reply->address.s_addr, 4);
  }
  if (has_authority) {
    // Of the root, by nobody and from nowhere; serial, refresh, retry, expire and the time that a denial holds.
    const unsigned char record[] = {0, 0, TYPE_SOA, 0, CLASS_IN, 0, 0,     0, TTL_S, 0, 22, 0, 0, 0, 0, 0, 1,
                                    0, 0, 0,        TTL_S, 0, 0, 0, TTL_S, 0, 0,     0, TTL_S, 0, 0, 0, TTL_S};
    at = put(answer, at, record, sizeof record);
  }
  if (reply->edns.is_there) {
    const unsigned char option[] = {
        0, 0, TYPE_OPT, UDP_PAYLOAD >> 8, UDP_PAYLOAD & 255, (unsigned char)(reply->code >> 4), 0, 0, 0, 0, 0};
    at = put(answer, at, option, sizeof option);
  }
  return at;
}

static void judge(struct reply *reply) {
  const struct question *question = reply->question;
  bool is_transfer = question->type == TYPE_AXFR || question->type == TYPE_IXFR;
  bool is_class = question->class == CLASS_IN || question->class == CLASS_ANY;
  bool wants_address = question->type == TYPE_A || question->type == TYPE_ANY;
  reply->code = REFUSED;
  if (is_transfer || !is_class) return;
  reply->code = NXDOMAIN;
  if (!question->is_plain) return;
  switch (look_up(question->host, question->host_length, wants_address ? &reply->address : NULL)) {
    case NAME_REFUSED: return;
    case NAME_NO_PLACE: reply->code = SERVFAIL; return;
    case NAME_LISTED: break;
  }
  reply->code = NOERROR;
  reply->has_address = wants_address;
}

size_t answer_query(const unsigned char *query, size_t length, unsigned char answer[ANSWER_MAX],
                    struct refused_question *refused) {
  struct reader reader = {.bytes = query, .length = length};
  struct question question;
  struct reply reply = {.code = FORMERR};
  uint16_t id, flags, questions, answers, authorities, additional;
  refused->name[0] = '\0';
  // Nobody answers an answer: two resolvers could talk for ever.
  if (!read_u16(&reader, &id) || !read_u16(&reader, &flags) || !read_u16(&reader, &questions) ||
      !read_u16(&reader, &answers) || !read_u16(&reader, &authorities) || !read_u16(&reader, &additional) ||
      (flags & 0x8000) != 0)
    return 0;
  if ((flags & 0x7800) != 0) {
    reply.code = NOTIMP;
    return write_answer(query, &reply, answer);
  }
  struct refused_question shown;
  bool is_read = questions == 1 && read_name(&reader, &question, &shown) && read_u16(&reader, &question.type) &&
                 read_u16(&reader, &question.class);
  question.end = reader.at;
  if (!is_read || !read_records(&reader, (unsigned)answers + authorities + additional, &reply.edns)) {
    reply.edns.is_there = false;
    return write_answer(query, &reply, answer);
  }
  reply.question = &question;
  if (reply.edns.is_there && reply.edns.version != 0)
    reply.code = BADVERS;
  else
    judge(&reply);
  if (reply.code == REFUSED || reply.code == NXDOMAIN || reply.code == SERVFAIL) {
    *refused = shown;
    refused->is_listed = reply.code == SERVFAIL;
    refused->type = question.type;
  }
  return write_answer(query, &reply, answer);
}
