#include "exported_name.h"

#include <new>
#include <utility>

namespace lrpc::server {

void tell(const std::vector<RegistrationNews>& news) noexcept {
  for (const RegistrationNews& one : news)
    call_hook(*one.interface, "on_registration", [&] { one.interface->options.on_registration(one.status); });
}

Error copy_of(const Error& error) noexcept try { return error; } catch (const std::bad_alloc&) {
  return {error.code, {}};
}

void ExportedName::granted(std::uint64_t id, std::vector<RegistrationNews>& news) noexcept {
  established_ = true;
  asked_ = false;
  registered_ = id;
  change({}, news);
}

void ExportedName::refused(Error why, std::vector<RegistrationNews>& news) noexcept {
  asked_ = false;
  refused_ = true;
  change(std::move(why), news);
}

bool ExportedName::lost(const Error& why, std::vector<RegistrationNews>& news) noexcept {
  const bool had = std::exchange(registered_, 0) != 0;
  asked_ = refused_ = false;
  Error told = copy_of(why);
  told.code = Errc::peer_gone;
  change(std::move(told), news);
  return had;
}

/// `why`: Errc::ok if the nameserver has the name.
void ExportedName::change(Error why, std::vector<RegistrationNews>& news) noexcept {
  if (std::exchange(told_, why.code) == why.code || !interface_->options.on_registration) return;
  news.push_back({interface_, why.code == Errc::ok ? Status() : Status(std::move(why))});
}

}  // namespace lrpc::server
