// The encoding of a group's replies, and the other parts of a group call that are not templates.
#include <new>

#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/detail/client/remote/group_call.h"
#include "lrpc/detail/shim/system/little_endian.h"

namespace lrpc::client {

std::size_t GroupReplies::put(const One& one, std::span<std::byte> room) noexcept {
  shim::ByteWriter writer(room.data());
  writer.number(one.host);
  writer.number(one.status);
  writer.number(std::uint16_t{0});
  writer.number(static_cast<std::uint32_t>(one.image.size()));
  writer.put(one.image);
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

bool had_memory(void (*work)(void* of), void* of) noexcept try {
  work(of);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace lrpc::client
