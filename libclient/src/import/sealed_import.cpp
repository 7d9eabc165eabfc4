// Importing in a sealed domain.
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "import.h"
#include "lrpc/detail/shim/trap/trap.h"

namespace lrpc::client {
namespace {

Status check(std::string_view name, const Pdl& pdl, const ImportOptions& options, const shim::SealedBinding& found) {
  if (name != found.granted.name) {
    return Error{Errc::name_unknown, "this domain is sealed and bound to '" + found.granted.name + "' alone, not to '" +
                                         std::string(name) + "'"};
  }
  if (options.gate != Gate::adaptive && options.gate != Gate::trap)
    return Error{Errc::not_supported, "a sealed domain has the trap gate and no other"};
  if (Status fits = shim::compatible(pdl.interface, found.granted.interface.view()); !fits) return fits;
  if (!std::ranges::equal(found.bound.classes, pdl.classes))
    return Error{Errc::hash_mismatch, "the server's A-stacks differ from this client's: regenerate both sides' stubs"};
  return {};
}

/// The domain's one binding, if it fits what is imported. Only then is it taken.
Result<shim::SealedBinding> take_binding(std::string_view name, const Pdl& pdl, const ImportOptions& options) {
  static std::mutex mutex;
  static std::optional<shim::SealedBinding> unused;
  static bool taken = false;
  const std::lock_guard lock(mutex);
  if (taken) return Error{Errc::limit_reached, "a sealed domain has one binding, and imports it once"};
  if (!unused) {
    auto found = shim::read_sealed_binding(::secure_getenv(shim::kSealedVariable));
    if (!found) return found.error();
    unused = *std::move(found);
  }
  if (Status fits = check(name, pdl, options, *unused); !fits) return fits.error();
  taken = true;
  return *std::exchange(unused, std::nullopt);
}

}  // namespace

bool in_sealed_domain() noexcept { return ::secure_getenv(shim::kSealedVariable) != nullptr; }

Result<Binding> import_sealed(std::string_view name, const Pdl& pdl, const ImportOptions& options) {
  if (Status sound = check_options(options, true); !sound) return sound.error();
  auto found = take_binding(name, pdl, options);
  if (!found) return found.error();
  auto layout = shim::RegionLayout::of(pdl.classes);
  if (!layout) return layout.error();
  auto region = shim::Region::map(std::move(found->region), *std::move(layout));
  if (!region) return region.error();

  BindingParts parts;
  parts.id = found->bound.binding_id;
  parts.nonce = found->bound.nonce;
  parts.server = found->bound.server;
  parts.region = *std::move(region);
  parts.gate = Gate::trap;
  parts.supply = options.supply;
  parts.watched = false;
  auto object = BindingObject::create(std::move(parts));
  if (!object) return object.error();
  (*object)->set_sealed();
  return detail::StubAccess::bind<Binding>(*std::move(object));
}

}  // namespace lrpc::client
