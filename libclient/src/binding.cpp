// Binding: its import() chooses between a remote, a sealed and a local import.
#include "lrpc/detail/client/import/binding.h"

#include <utility>

#include "import/import.h"
#include "lrpc/detail/shim/system/cancellation.h"
#include "remote/remote_import.h"

namespace lrpc {

Result<Binding> Binding::import(std::string_view name, const Pdl& pdl, const ImportOptions& options) {
  const shim::NoCancellation never;
  if (name.find('@') != std::string_view::npos) return client::import_remote(name, pdl, options);
  if (!shim::valid_name(name)) {
    return Error{Errc::invalid_argument,
                 "'" + std::string(name) + "' is not a name: 1 to 255 printable ASCII characters without space or '/'"};
  }
  if (client::in_sealed_domain()) return client::import_sealed(name, pdl, options);
  return client::import_here(name, pdl, options);
}

Binding::Binding(std::unique_ptr<client::BindingObject> object) noexcept : object_(std::move(object)) {}
Binding::Binding(Binding&&) noexcept = default;
Binding& Binding::operator=(Binding&& other) noexcept {
  if (this == &other) return *this;
  const Binding before(std::exchange(object_, std::move(other.object_)));
  return *this;
}
Binding::~Binding() {
  if (object_ != nullptr) object_->let_go();  // the pointer stays: a hook that this waits for may use the Binding
  (void)object_.release();
}

}  // namespace lrpc
