// Attacks everything that lrpc-directory parses: etcd's answers of each kind, entries, errors, and its own
// configuration.
#include <algorithm>
#include <string>

#include "config.h"
#include "etcd/base64.h"
#include "etcd/etcd_messages.h"
#include "etcd/published_name.h"
#include "input.h"

namespace lrpc::directory {
namespace {

using fuzz::require;

void read_entry(std::string_view text) {
  const std::size_t cut = text.find('\n');
  if (cut == std::string_view::npos) return;
  const auto read = parse_published("/lrpc", text.substr(0, cut), text.substr(cut + 1));
  if (!read) return;
  require(key_of("/lrpc", read->name, read->host) == text.substr(0, cut), "an entry has one key");
  const std::string again = value_of(*read);
  require(again.size() <= kMostValue, "what is read can be written");
  const auto same = parse_published("/lrpc", text.substr(0, cut), again);
  require(same && same->instance == read->instance && same->interface.name == read->interface.name &&
              same->interface.hash == read->interface.hash,
          "writing and reading again gives the same entry");
}

void read_base64(std::string_view text) {
  const auto bytes = from_base64(text);
  if (bytes) require(to_base64(*bytes) == text, "a text in base64 has one spelling");
}

void read_lease(std::string_view text) {
  const auto granted = read_grant(text);
  if (granted) require(granted->id != 0 && granted->ttl.count() > 0, "a granted lease lasts");
  const auto kept = read_keep_alive(text);
  if (kept) require(kept->id != 0 && kept->ttl.count() >= 0, "a lease has a time");
  (void)read_attached(text);
}

void read_refusal(std::string_view text) {
  for (const long status : {400L, 401L, 404L, 412L, 500L}) {
    const Error error = error_of(status, text);
    require(error.code != Errc::ok && error.text.size() <= 300, "a refusal is short");
    require(std::ranges::all_of(error.text, [](char c) { return c >= ' ' && c <= '~'; }), "and printable");
  }
}

}  // namespace
}  // namespace lrpc::directory

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrpc::directory;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0: (void)read_range(text); break;
    case 1: read_lease(text); break;
    case 2: (void)read_changes(text); break;
    case 3: read_entry(text); break;
    case 4: read_base64(text); break;
    case 5: read_refusal(text); break;
    case 6:
      if (const auto token = read_token(text))
        lrpc::fuzz::require(token->find_first_of("\r\n ") == std::string::npos, "a token ends no header");
      break;
    default: (void)parse_config(text); break;
  }
  return 0;
}
