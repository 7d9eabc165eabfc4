#include "netrpc/protocols/auth/keys.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <charconv>

#include "lrpc/detail/shim/system/own_file.h"

namespace lrpc::netrpc::auth {

namespace {

constexpr std::size_t kMostInFile = std::size_t{1} << 20;
using Secret = std::array<std::uint8_t, 32>;

MacKey derive(const Secret& secret, std::string_view purpose) noexcept {
  MacKey key;
  crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(purpose.data()), purpose.size(),
                     secret.data(), secret.size());
  return key;
}

std::string_view next_word(std::string_view& line) noexcept {
  const auto begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  const auto end = std::min(line.find_first_of(" \t\r"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

/// "10.0.0.2", "10.1.0.0/16" or "*".
bool parse_who(std::string_view who, Key& key) {
  if (who == "*") return true;
  key.prefix = 32;
  const auto slash = who.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view bits = who.substr(slash + 1);
    const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), key.prefix);
    if (error != std::errc() || end != bits.data() + bits.size() || key.prefix > 32) return false;
  }
  const auto host = parse_host(who.substr(0, slash));
  if (!host) return false;
  key.network = host->value;
  return true;
}

/// Needed because libsodium takes some bytes beyond ASCII for letters.
bool in_base64(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
           c == '=';
  });
}

/// Whether an error may show a first word that is no host. Errors go into logs, and a key may stand in a host's place,
/// or right behind it. So only a word made of an address's characters is shown.
bool may_be_shown(std::string_view who) noexcept {
  constexpr std::size_t kLongestAddress = 50;
  return who.size() <= kLongestAddress && who.find_first_not_of("0123456789abcdefABCDEF.:/") == std::string_view::npos;
}

constexpr std::uint32_t mask(unsigned prefix) noexcept { return prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix); }

/// Text that holds secrets: wiped on destruction.
struct Text {
  std::string text;
  Text() = default;
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { sodium_memzero(text.data(), text.size()); }
};

}  // namespace

Key::~Key() {
  sodium_memzero(mac.data(), mac.size());
  sodium_memzero(derive.data(), derive.size());
}

bool Key::same_secret(const Key& other) const noexcept {
  return sodium_memcmp(mac.data(), other.mac.data(), mac.size()) == 0;
}

Result<KeyRing> KeyRing::parse(std::string_view text, std::string_view name) {
  if (sodium_init() < 0) return Error{Errc::system_error, "libsodium cannot be initialised"};
  KeyRing ring;
  ring.keys_.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) +
                     1);  // no copies left behind
  for (int line_number = 1; !text.empty(); ++line_number) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const std::string_view who = next_word(line);
    if (who.empty()) continue;
    const std::string_view encoded = next_word(line);
    const auto wrong = [&](std::string_view why) {
      return Error{Errc::invalid_argument, fmt::format("{}:{}: {}", name, line_number, why)};
    };
    if (!next_word(line).empty()) return wrong("more than a host and a key");
    Key key;
    key.name = who;
    if (!parse_who(who, key)) {
      const bool shown = may_be_shown(who);
      if (shown && who.find(':') != std::string_view::npos) return wrong(why_no_host(who));
      return wrong(fmt::format("{} is not a host (10.0.0.2), a network (10.0.0.0/24) or *",
                               shown ? fmt::format("'{}'", who) : "the first word"));
    }
    if ((key.network & ~mask(key.prefix)) != 0)
      return wrong(fmt::format("'{}' has bits behind its prefix: write {}/{}", who,
                               to_string(HostAddress{key.network & mask(key.prefix)}), key.prefix));
    Secret secret{};
    std::size_t size = 0;
    const char* parsed_to = nullptr;
    const int decoded = sodium_base642bin(secret.data(), secret.size(), encoded.data(), encoded.size(), nullptr, &size,
                                          &parsed_to, sodium_base64_VARIANT_ORIGINAL);
    if (decoded != 0 || size != secret.size() || parsed_to != encoded.data() + encoded.size() || !in_base64(encoded)) {
      sodium_memzero(secret.data(), secret.size());
      return wrong("the key is not 32 bytes in base64: make one with lrpc-netd --generate-key");
    }
    key.mac = netrpc::auth::derive(secret, "lrpc AUTH 1 handshake");
    key.derive = netrpc::auth::derive(secret, "lrpc AUTH 1 associations");
    sodium_memzero(secret.data(), secret.size());
    for (const Key& other : ring.keys_)
      if (other.network == key.network && other.prefix == key.prefix)
        return wrong(fmt::format("'{}' has a key already", who));
    ring.keys_.push_back(std::move(key));
  }
  std::stable_sort(ring.keys_.begin(), ring.keys_.end(),
                   [](const Key& a, const Key& b) { return a.prefix > b.prefix; });
  std::vector<Key*> by_secret;
  for (Key& key : ring.keys_) by_secret.push_back(&key);
  std::sort(by_secret.begin(), by_secret.end(), [](const Key* a, const Key* b) { return a->mac < b->mac; });
  for (std::size_t i = 1; i < by_secret.size(); ++i)
    if (by_secret[i - 1]->same_secret(*by_secret[i])) by_secret[i - 1]->shared = by_secret[i]->shared = true;
  return ring;
}

Result<KeyRing> KeyRing::read(const std::string& path) {
  Text file;
  if (auto read = shim::read_own_file(path, {.most = kMostInFile, .secret = true}, file.text); !read)
    return read.error();
  return parse(file.text, path);
}

const Key* KeyRing::find(HostAddress host) const noexcept {
  for (const Key& key : keys_)
    if ((host.value & mask(key.prefix)) == key.network) return &key;
  return nullptr;
}

std::string generate_key() {
  if (sodium_init() < 0) return {};
  Secret secret;
  randombytes_buf(secret.data(), secret.size());
  std::string text(sodium_base64_ENCODED_LEN(sizeof secret, sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), secret.data(), secret.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // the terminating zero
  sodium_memzero(secret.data(), secret.size());
  return text;
}

}  // namespace lrpc::netrpc::auth
