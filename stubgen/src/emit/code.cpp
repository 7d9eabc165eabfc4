#include "code.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lrpc::stubgen {
namespace {

constexpr std::size_t kContinuation = 4;

/// The length of the UTF-8 sequence at the beginning of `text`; 0 if it is invalid, or a control or format character.
/// Those can change the direction or the line of the text around them and so make code look like other code.
std::size_t harmless_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t length = lead >= 0xf0 && lead <= 0xf4  ? 4
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                                                           : 0;
  if (length == 0) return 0;
  std::uint32_t point = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3fU);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && (point < 0x10000 || point > 0x10ffff));
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  const bool format = point < 0xa0 || point == 0x61c || (point >= 0x200b && point <= 0x200f) ||
                      (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x206f) || point == 0xfeff;
  return overlong || surrogate || format ? 0 : length;
}

/// Makes a comment line of the interface file safe: it can neither end the generated comment nor continue it on the
/// next line.
std::string comment_text(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t length = harmless_sequence(text);
    if (length == 0) {
      safe += text.front() == '\t' ? ' ' : '?';
      text.remove_prefix(1);
    } else {
      safe += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  while (!safe.empty() && (safe.back() == '\\' || safe.back() == ' ')) safe.pop_back();
  if (safe.ends_with("?\?/")) safe.pop_back();
  return safe;
}

}  // namespace

void Code::line(std::string_view text) {
  if (!text.empty()) text_.append(indent_, ' ').append(text);
  text_ += '\n';
}

void Code::open(std::string_view text) {
  line(text);
  indent_ += 2;
}

void Code::open(std::string_view head, const std::vector<std::string>& items, std::string_view tail) {
  list(head, items, tail);
  indent_ += 2;
}

void Code::close(std::string_view text) {
  indent_ -= 2;
  line(text);
}

void Code::guard(std::string_view condition, std::string_view action) {
  const std::string head = fmt::format("if ({}) [[unlikely]] ", condition);
  std::string whole(action);
  std::ranges::replace(whole, '\n', ' ');
  if (indent_ + head.size() + whole.size() <= kWidth) return line(head + whole);
  line(head.substr(0, head.size() - 1));
  indent_ += 2;
  const std::size_t broken = action.find('\n');
  if (broken == std::string_view::npos || indent_ + whole.size() <= kWidth) {
    line(whole);
  } else {
    line(action.substr(0, broken));
    line("    " + std::string(action.substr(broken + 1)));
  }
  indent_ -= 2;
}

void Code::comment(std::string_view text) {
  std::string current = "//";
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (indent_ + current.size() + 1 + word.size() > kWidth) line(std::exchange(current, "//"));
    current.append(" ").append(word);
  }
  line(current);
}

void Code::doc(const Doc& doc) {
  std::size_t begin = 0;
  std::size_t end = doc.size();
  while (begin < end && comment_text(doc[begin]).empty()) ++begin;
  while (end > begin && comment_text(doc[end - 1]).empty()) --end;
  for (; begin < end; ++begin) {
    const std::string text = comment_text(doc[begin]);
    line(text.empty() ? "///" : "/// " + text);
  }
}

void Code::function(std::string_view head, const std::vector<std::string>& parameters, std::string_view tail,
                    std::string_view call, const std::vector<std::string>& arguments, std::string_view end,
                    std::string_view after) {
  const std::string whole = fmt::format("{}{}{} {{ {}{}{} {}", head, fmt::join(parameters, ", "), tail, call,
                                        fmt::join(arguments, ", "), end, after);
  if (indent_ + whole.size() <= kWidth) return line(whole);
  open(head, parameters, fmt::format("{} {{", tail));
  list(call, arguments, end);
  close(after);
}

void Code::list(std::string_view head, const std::vector<std::string>& items, std::string_view tail) {
  const std::string whole = fmt::format("{}{}{}", head, fmt::join(items, ", "), tail);
  if (indent_ + whole.size() <= kWidth || items.empty()) return line(whole);
  line(head);
  indent_ += kContinuation;
  fill({}, items, tail);
  indent_ -= kContinuation;
}

void Code::fill(std::string_view head, const std::vector<std::string>& items, std::string_view tail) {
  std::string current(head);
  bool first = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 == items.size() ? std::string(tail) : ",");
    const bool alone = current.empty() || current.back() == '{';
    if (!alone && indent_ + current.size() + 1 + item.size() > kWidth) {
      line(std::exchange(current, {}));
      if (first && !head.empty()) indent_ += kContinuation;
      first = false;
    }
    current.append(alone || current.empty() ? "" : " ").append(item);
  }
  line(current);
  if (!first && !head.empty()) indent_ -= kContinuation;
}

}  // namespace lrpc::stubgen
