// PSYNC's header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "lrpc/netrpc/control.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/message.h"
#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc::psync {

using Mark = control::MessageName;

enum class Type : std::uint8_t {
  message = 1,  ///< Marks: what directly precedes it.
  status = 2,   ///< Marks: the last message of each member that its sender has.
  request = 3,  ///< Marks: messages that its sender lacks.
  gone = 4,     ///< Marks: up to these, the receiver must not wait for messages that it lacks.
};

///     0        1        2        3                         | 12 bytes for each mark:
///     type     ask      marks    changed                   |   host, life, sequence
///     protocol, group, origin, life, sequence: 4 bytes each|
/// A status with a sequence other than 0 asks for its receiver's life, or answers that with the same number.
struct Header {
  static constexpr std::size_t kFixed = 24;
  static constexpr std::size_t kMark = 12;
  static constexpr std::size_t kMostMarks = control::Context::kMost;
  static constexpr std::size_t kMost = kFixed + kMostMarks * kMark;

  Type type = Type::message;
  bool ask = false;      ///< A status that asks for one in return.
  bool changed = false;  ///< A message whose marks are not those it was pushed with. Other copies may name less.
  ProtocolNumber protocol = 0;
  HostAddress group;
  Mark id{};  ///< Of a message; else its sender's host and life.
  std::array<Mark, kMostMarks> marks{};
  std::size_t count = 0;

  [[nodiscard]] std::size_t size() const noexcept { return kFixed + count * kMark; }
  /// Precondition: count < kMostMarks.
  void add(const Mark& mark) noexcept { marks[count++] = mark; }
  /// It asks for its receiver's life.
  [[nodiscard]] bool is_question() const noexcept { return type == Type::status && ask && id.sequence != 0; }
  [[nodiscard]] std::span<const Mark> all() const noexcept { return std::span(marks).first(count); }

  /// `to`: size() bytes.
  void encode(std::byte* to) const noexcept {
    WireWriter writer(to);
    writer.put(static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(ask ? 1 : 0));
    writer.put(static_cast<std::uint8_t>(count), static_cast<std::uint8_t>(changed ? 1 : 0));
    writer.put(protocol, group, id.host, id.life, id.sequence);
    for (const Mark& mark : all()) writer.put(mark.host, mark.life, mark.sequence);
  }
  /// As decode(); `packet` stays as it is.
  [[nodiscard]] static std::optional<Header> of(const Message& packet) noexcept {
    std::array<std::byte, kMost> bytes;
    return decode(std::span(bytes).first(packet.copy_to(bytes)));
  }
  /// Null: it is malformed.
  [[nodiscard]] static std::optional<Header> decode(std::span<const std::byte> from) noexcept {
    if (from.size() < kFixed) return {};
    WireReader reader(from.data());
    Header header;
    std::array<std::uint8_t, 4> first{};
    reader.get(first, header.protocol, header.group, header.id.host, header.id.life, header.id.sequence);
    const auto [type, ask, count, changed] = first;
    header.count = count;
    if (type < 1 || type > 4 || ask > 1 || changed > 1 || count > kMostMarks || from.size() < header.size()) return {};
    header.type = static_cast<Type>(type);
    header.ask = ask == 1;
    header.changed = changed == 1;
    for (Mark& one : std::span(header.marks).first(count)) reader.get(one.host, one.life, one.sequence);
    return header;
  }
};

}  // namespace lrpc::netrpc::psync
