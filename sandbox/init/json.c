// Reads one JSON answer. What is not JSON yields false, never a read beyond the end.
#include "json.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

static void skip_space(struct json *text) {
  while (text->at < text->end && strchr(" \t\r\n", *text->at) != NULL && *text->at != '\0') text->at++;
}

static bool take(struct json *text, char wanted) {
  skip_space(text);
  if (text->at == text->end || *text->at != wanted) return false;
  text->at++;
  return true;
}

static bool skip_string(struct json *text) {
  if (!take(text, '"')) return false;
  for (; text->at < text->end; text->at++) {
    if (*text->at == '"') return text->at++, true;
    if (*text->at == '\\' && ++text->at == text->end) return false;
  }
  return false;
}

static bool skip_value(struct json *text, int depth);

// The members or elements of an object or array, after its opening bracket.
static bool skip_contents(struct json *text, char close, int depth) {
  if (depth == 0) return false;
  if (take(text, close)) return true;
  do {
    if (close == '}' && (!skip_string(text) || !take(text, ':'))) return false;
    if (!skip_value(text, depth - 1)) return false;
  } while (take(text, ','));
  return take(text, close);
}

static bool skip_value(struct json *text, int depth) {
  skip_space(text);
  if (text->at == text->end) return false;
  if (*text->at == '"') return skip_string(text);
  if (take(text, '{')) return skip_contents(text, '}', depth);
  if (take(text, '[')) return skip_contents(text, ']', depth);
  const char *start = text->at;
  while (text->at < text->end && strchr("+-.0123456789aeflnrstuE", *text->at) != NULL && *text->at != '\0')
    text->at++;
  return text->at > start;
}

bool json_member(struct json object, const char *name, struct json *value) {
  struct json text = object;
  if (!take(&text, '{') || take(&text, '}')) return false;
  do {
    skip_space(&text);
    const char *key = text.at + 1;
    if (!skip_string(&text)) return false;
    size_t key_bytes = (size_t)(text.at - 1 - key);
    if (!take(&text, ':')) return false;
    skip_space(&text);
    const char *start = text.at;
    if (!skip_value(&text, DEPTH_MAX)) return false;
    if (key_bytes == strlen(name) && memcmp(key, name, key_bytes) == 0) {
      *value = (struct json){.at = start, .end = text.at};
      return true;
    }
  } while (take(&text, ','));
  return false;
}

static int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// \uXXXX as UTF-8; half of a surrogate pair becomes '?'. Returns the bytes written, 0 when malformed.
static size_t put_unicode(struct json *text, char out[3]) {
  unsigned code = 0;
  if (text->end - text->at < 4) return 0;
  for (int digit = 0; digit < 4; digit++) {
    int value = hex_digit(*text->at++);
    if (value < 0) return 0;
    code = code << 4 | (unsigned)value;
  }
  if (code >= 0xd800 && code < 0xe000) code = '?';
  if (code < 0x20 || code == 0x7f) code = ' ';
  if (code < 0x80) return out[0] = (char)code, 1;
  if (code < 0x800) return out[0] = (char)(0xc0 | code >> 6), out[1] = (char)(0x80 | (code & 0x3f)), 2;
  out[0] = (char)(0xe0 | code >> 12);
  out[1] = (char)(0x80 | (code >> 6 & 0x3f));
  out[2] = (char)(0x80 | (code & 0x3f));
  return 3;
}

bool json_text(struct json value, char *text, size_t size) {
  size_t used = 0;
  if (!take(&value, '"')) return false;
  while (value.at < value.end && *value.at != '"') {
    char out[3] = {*value.at++};
    size_t bytes = 1;
    if (out[0] == '\\') {
      if (value.at == value.end) return false;
      char escape = *value.at++;
      out[0] = strchr("bfnrt", escape) != NULL ? ' ' : escape;
      if (escape == 'u' && (bytes = put_unicode(&value, out)) == 0) return false;
    }
    if ((unsigned char)out[0] < 0x20 || out[0] == 0x7f) out[0] = ' ';
    if (used + bytes + 1 > size) break;
    memcpy(text + used, out, bytes);
    used += bytes;
  }
  text[used] = '\0';
  return true;
}

bool json_integer(struct json value, long *number) {
  char digits[24] = "";
  size_t length = (size_t)(value.end - value.at);
  if (length == 0 || length >= sizeof digits) return false;
  memcpy(digits, value.at, length);
  char *rest;
  *number = strtol(digits, &rest, 10);
  return *rest == '\0';
}
