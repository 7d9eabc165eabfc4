#include "etcd/published_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "etcd/json.h"
#include "lrpc/detail/shim/system/identifier.h"

namespace lrpc::directory {
namespace {

constexpr std::int64_t kFormat = 1;

std::optional<std::uint64_t> from_hex(std::optional<std::string_view> text) {
  if (!text || text->size() != 16) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + 16, number, 16);
  if (error != std::errc() || end != text->data() + 16) return std::nullopt;
  return number;
}

std::optional<std::uint16_t> version(const Json& value, const char* key) {
  const auto number = integer_of(value, key);
  if (!number || *number < 0 || *number > 0xffff) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

bool printable_name(std::string_view text) {
  return !text.empty() && text.size() <= shim::kMaxNameLength &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

std::string host_text(Host host) {
  std::array<char, INET_ADDRSTRLEN> text{};
  const in_addr address{htonl(host)};
  return inet_ntop(AF_INET, &address, text.data(), text.size());
}

std::optional<Host> parse_host(std::string_view text) {
  in_addr address{};
  if (inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  const Host host = ntohl(address.s_addr);
  const Host network = host >> 24;
  if (network == 0 || network == 127 || network >= 224) return std::nullopt;
  if (host_text(host) != text) return std::nullopt;  // each address has one spelling, so one key
  return host;
}

std::string keys_of_all(std::string_view prefix) { return std::string(prefix) + "/names/"; }
std::string keys_of_name(std::string_view prefix, std::string_view name) {
  return keys_of_all(prefix).append(name).append("/");
}
std::string key_of(std::string_view prefix, std::string_view name, Host host) {
  return keys_of_name(prefix, name).append(host_text(host));
}

std::string value_of(const PublishedName& published) {
  return Json({{"format", kFormat},
               {"host", host_text(published.host)},
               {"instance", shim::hexadecimal(published.instance)},
               {"interface", published.interface.name},
               {"major", published.interface.major},
               {"minor", published.interface.minor},
               {"hash", shim::hexadecimal(published.interface.hash)}})
      .dump();
}

std::optional<PublishedName> parse_published(std::string_view prefix, std::string_view key, std::string_view value) {
  const std::string all = keys_of_all(prefix);
  if (!key.starts_with(all) || value.size() > kMostValue) return std::nullopt;
  key.remove_prefix(all.size());
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  PublishedName published;
  published.name = key.substr(0, slash);
  const auto host = parse_host(key.substr(slash + 1));
  if (!shim::valid_name(published.name) || !host) return std::nullopt;
  published.host = *host;

  const auto parsed = parse_json(value);
  if (!parsed || integer_of(*parsed, "format") != kFormat || text_of(*parsed, "host") != key.substr(slash + 1))
    return std::nullopt;
  const auto interface = text_of(*parsed, "interface");
  const auto major = version(*parsed, "major");
  const auto minor = version(*parsed, "minor");
  const auto hash = from_hex(text_of(*parsed, "hash"));
  const auto instance = from_hex(text_of(*parsed, "instance"));
  if (!interface || !printable_name(*interface) || !major || !minor || !hash || !instance) return std::nullopt;
  published.interface = {std::string(*interface), *major, *minor, *hash};
  published.instance = *instance;
  return published;
}

}  // namespace lrpc::directory
