// Attacks the reader of the file of keys (AUTH). An independent reading of the same text says which line a host gets,
// and whether a key belongs to only one host. The order of lines makes no difference. A refusal says where the mistake
// is. No error reveals a key, wherever in the line it is: errors go into logs, which more people may read than the
// file.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "input.h"
#include "netrpc/protocols/auth/keys.h"

namespace lrpc::netrpc::auth {
namespace {

using fuzz::require;

constexpr std::size_t kKeyLetters = 44;  ///< 32 bytes in base64.

std::vector<std::string_view> split(std::string_view text, std::string_view at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct Line {
  std::string_view who;
  std::string_view key;
  std::uint32_t network = 0;
  unsigned bits = 0;
  [[nodiscard]] bool has(std::uint32_t host) const noexcept {
    return bits == 0 || (host ^ network) >> (32 - bits) == 0;
  }
};

/// A line of an accepted text, so it is a comment or correct.
std::optional<Line> read_line(std::string_view text) {
  std::vector<std::string_view> words = split(text.substr(0, text.find('#')), " \t\r");
  std::erase_if(words, [](std::string_view word) { return word.empty(); });
  if (words.empty()) return std::nullopt;
  require(words.size() == 2, "a line has a host and a key");
  Line line{.who = words[0], .key = words[1]};
  if (line.who == "*") return line;
  std::array<std::uint32_t, 5> numbers{0, 0, 0, 0, 32};
  const auto parts = split(line.who, "./");
  require(parts.size() == 4 || parts.size() == 5, "a host has four numbers, a network five");
  for (std::size_t i = 0; i < parts.size(); ++i)
    (void)std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), numbers[i]);
  for (std::size_t i = 0; i < 4; ++i) line.network = line.network << 8 | numbers[i];
  line.bits = numbers[4];
  require(line.bits <= 32, "a prefix has 32 bits at most");
  return line;
}

bool is_key_letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

void check_refusal(std::string_view text, const Error& error) {
  require(error.code == Errc::invalid_argument && error.text.starts_with("keys:"), "a refusal says where");
  std::size_t line = 0;
  const char* const begin = error.text.data() + 5;
  const auto [end, wrong] = std::from_chars(begin, error.text.data() + error.text.size(), line);
  require(wrong == std::errc() && *end == ':', "it names a line");
  require(line >= 1 && line <= split(text, "\n").size(), "of the file");
  require(error.text.size() <= 300 && std::ranges::all_of(error.text, [](char c) { return c >= ' ' && c <= '~'; }),
          "it is short and printable");
  for (std::size_t at = 0; at + kKeyLetters <= text.size(); ++at) {
    const std::string_view key = text.substr(at, kKeyLetters);
    if (key.back() != '=' || !std::ranges::all_of(key.substr(0, kKeyLetters - 1), is_key_letter)) continue;
    require(error.text.find(key) == std::string::npos, "no error tells a key");
  }
}

void check_host(const KeyRing& ring, const std::vector<Line>& lines, std::uint32_t host) {
  const Line* best = nullptr;
  for (const Line& line : lines)
    if (line.has(host) && (best == nullptr || line.bits > best->bits)) best = &line;
  const Key* const found = ring.find({host});
  require((found == nullptr) == (best == nullptr), "a host has a key if a line is about it");
  if (found == nullptr) return;
  require(found->name == best->who, "the most specific line counts");
  const auto with_key = std::ranges::count(lines, best->key, &Line::key);
  require(found->of_one_host() == (best->bits == 32 && with_key == 1), "a key is one host's, or several hosts'");
}

void run(fuzz::Input input) {
  std::vector<std::uint32_t> hosts(input.byte() % 8);
  for (std::uint32_t& host : hosts) host = input.four();
  const auto bytes = input.rest();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto ring = KeyRing::parse(text, "keys");
  if (!ring) return check_refusal(text, ring.error());

  std::vector<Line> lines;
  std::string reversed;
  for (const std::string_view one : split(text, "\n")) {
    reversed.insert(0, std::string(one) + "\n");
    if (const auto line = read_line(one)) lines.push_back(*line);
  }
  require(ring->size() == lines.size(), "each line is read");
  const auto again = KeyRing::parse(reversed, "keys");
  require(bool(again), "the order of lines makes no difference");
  for (const Line& line : lines) hosts.push_back(line.network);
  for (const std::uint32_t host : hosts) {
    check_host(*ring, lines, host);
    check_host(*again, lines, host);
    const Key* const one = ring->find({host});
    require(one == nullptr || one->same_secret(*again->find({host})), "the same line has the same key");
  }
}

}  // namespace
}  // namespace lrpc::netrpc::auth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::netrpc::auth::run({data, size});
  return 0;
}
