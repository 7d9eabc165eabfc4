// Attacks the code that removes a datagram's IP header: the rest has the length that the header says, and is within the
// datagram.
#include <algorithm>
#include <vector>

#include "input.h"
#include "netrpc/devices/ip/header.h"

namespace lrpc::netrpc {
namespace {

using lrpc::fuzz::Input;
using lrpc::fuzz::require;

void run(Input input) {
  BufferPool pool(std::size_t{1} << 20);
  {
    const std::size_t first = input.byte();  // devices deliver one piece; the layers of this host may deliver several
    const auto bytes = input.rest();
    Message message = Message::copy_of(pool, bytes.first(std::min(first, bytes.size())));
    Message more = Message::copy_of(pool, bytes.subspan(std::min(first, bytes.size())));
    if (!message.allocated() || !more.allocated() || !message.append(std::move(more))) return;
    const auto source = pop_ip_header(message);
    if (!source) return;
    require(source->known() && source->value >> 28 < 0xe, "a datagram comes from a host");
    const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
    const std::size_t header = (at(0) & 15) * 4;
    const std::size_t total = at(2) << 8 | at(3);
    require(at(0) >> 4 == 4 && header >= kIpHeader && header <= total && total <= bytes.size(), "its lengths hold");
    std::vector<std::byte> left(message.size());
    message.copy_to(left);
    require(std::ranges::equal(left, bytes.subspan(header, total - header)), "what is left is the datagram's data");
  }
  require(pool.in_use() == 0, "all buffers have been given back");
}

}  // namespace
}  // namespace lrpc::netrpc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::netrpc::run({data, size});
  return 0;
}
