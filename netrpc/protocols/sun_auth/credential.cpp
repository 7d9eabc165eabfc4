#include "netrpc/protocols/sun_auth/credential.h"

#include <algorithm>
#include <cstring>

#include "lrpc/netrpc/xdr.h"
#include "netrpc/protocols/sun_call/rpc_message.h"

namespace lrpc::netrpc::sun {

std::vector<std::byte> encode_null() { return std::vector<std::byte>(16); }

std::vector<std::byte> encode_sys(const AuthSysOptions& options, std::uint32_t stamp) {
  XdrWriter body;
  body.word(stamp).text(options.machine).word(options.uid).word(options.gid);
  body.word(static_cast<std::uint32_t>(options.gids.size()));
  for (const std::uint32_t gid : options.gids) body.word(gid);

  XdrWriter whole;
  whole.word(static_cast<std::uint32_t>(AuthFlavor::sys)).opaque(body.bytes());
  whole.word(static_cast<std::uint32_t>(AuthFlavor::none)).opaque({});  // the verifier
  return whole.bytes();
}

std::optional<control::ClaimedUser> decode_sys(std::span<const std::byte> body) noexcept {
  XdrReader reader(body);
  control::ClaimedUser user;
  reader.word();  // the stamp
  const std::string_view machine = reader.text(kMostMachine);
  user.uid = reader.word();
  user.gid = reader.word();
  const std::uint32_t gids = reader.word();
  if (gids > kMostGids || reader.rest().size() != 4 * std::size_t{gids} || !reader.right()) return std::nullopt;
  std::memcpy(user.machine.data(), machine.data(), std::min(machine.size(), user.machine.size() - 1));
  return user;
}

}  // namespace lrpc::netrpc::sun
