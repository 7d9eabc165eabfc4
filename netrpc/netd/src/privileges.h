// What lrpc-netd does not take over from whoever starts it.
#pragma once

namespace lrpc::netd {

/// Closes every descriptor above the standard ones but `keep` (negative: none), which a parent may have left open.
void close_inherited(int keep) noexcept;

}  // namespace lrpc::netd
