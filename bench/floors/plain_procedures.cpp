#include "plain_procedures.h"

namespace lrpc::bench {

void plain_null() noexcept {}
std::int32_t plain_add(std::int32_t a, std::int32_t b) noexcept { return a + b; }
void plain_big_in(Big /*data*/) noexcept {}
void plain_big_in_out(Big& data) noexcept { data[0] ^= std::byte{1}; }

}  // namespace lrpc::bench
