// How the replies of a group's members lie one behind the other.
#include <algorithm>
#include <concepts>

#include "lrpc/client/remote/remote_path.h"
#include "lrpc/shim/system/little_endian.h"

namespace lrpc::client {

std::size_t GroupReplies::put(const One& one, std::span<std::byte> room) noexcept {
  std::byte* to = room.data();
  const auto number = [&to](std::unsigned_integral auto value) {
    for (std::size_t i = 0; i < sizeof value; ++i) *to++ = static_cast<std::byte>(value >> (8 * i));
  };
  number(one.host);
  number(one.status);
  number(std::uint16_t{0});
  number(static_cast<std::uint32_t>(one.image.size()));
  std::ranges::copy(one.image, to);
  return kHead + one.image.size();
}

std::optional<GroupReplies::One> GroupReplies::next() noexcept {
  shim::ByteReader reader(left_);
  One one;
  one.host = reader.number<std::uint32_t>();
  one.status = reader.number<std::uint16_t>();
  reader.check(reader.number<std::uint16_t>() == 0);
  const auto size = reader.number<std::uint32_t>();
  one.image = reader.take(size);
  if (!reader.good()) return std::nullopt;
  left_ = left_.last(reader.left());
  return one;
}

}  // namespace lrpc::client
