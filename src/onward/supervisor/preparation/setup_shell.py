"""The shell that prepares a training's surroundings. Fixed text: what the user wrote comes as arguments; only setup lines are run.

Arguments: a file for the number of the step at work, a file for the environment that comes of it, then pairs of what to do and with what.
"""

from __future__ import annotations

SHELL = r"""
__onward_at=$1 __onward_into=$2
shift 2
__onward_steps=("$@")
set --

__onward_modules() {  # Lmod or Tcl modules, as this shell, the environment or the node brings them
    local __onward_file
    type -t module >/dev/null && return
    for __onward_file in "${LMOD_PKG:-}/init/bash" "${MODULESHOME:-}/init/bash" /etc/profile.d/*lmod*.sh /etc/profile.d/*modul*.sh \
        /usr/share/lmod/lmod/init/bash /usr/share/modules/init/bash /usr/share/Modules/init/bash \
        /opt/apps/lmod/lmod/init/bash /usr/local/lmod/lmod/init/bash /opt/modules/init/bash /usr/local/Modules/init/bash /etc/profile
    do
        [ -r "$__onward_file" ] || continue
        . "$__onward_file"
        type -t module >/dev/null && return
    done
    echo "there is no module command here: MODULESHOME, /etc/profile.d and the usual places have none" >&2
    return 127
}

__onward_load() {
    __onward_modules || return
    module load "$1" || return
    [ -n "${LMOD_CMD:-}${MODULES_CMD:-}" ] && return
    case ":${LOADEDMODULES:-}:" in  # modules before version 4 succeed whatever happens
        *":$1:"* | *":$1/"*) return 0 ;;
    esac
    echo "$1 is not among the loaded modules: ${LOADEDMODULES:-none}" >&2
    return 1
}

__onward_conda() {
    local __onward_tool __onward_found
    if [ "$(type -t conda)" = function ]; then
        conda activate "$1"
        return
    fi
    for __onward_tool in "${CONDA_EXE:-}" conda "${MAMBA_EXE:-}" micromamba mamba \
        ~/{miniconda3,miniforge3,mambaforge,anaconda3,conda,.conda}/bin/conda ~/{.local,micromamba}/bin/micromamba \
        /opt/{conda,miniconda3,miniforge3,anaconda3}/bin/conda
    do
        [ -n "$__onward_tool" ] && __onward_found=$(type -P "$__onward_tool") || continue
        case ${__onward_found##*/} in
            conda)
                if [ -r "${__onward_found%/*/*}/etc/profile.d/conda.sh" ]; then
                    . "${__onward_found%/*/*}/etc/profile.d/conda.sh"
                else
                    eval "$("$__onward_found" shell.bash hook)"
                fi
                conda activate "$1"
                return ;;
            *)
                eval "$("$__onward_found" shell hook --shell bash)"
                "${__onward_found##*/}" activate "$1"
                return ;;
        esac
    done
    echo "there is no conda, mamba or micromamba here: CONDA_EXE, PATH and the usual places have none" >&2
    return 127
}

__onward_venv() {
    if [ ! -r "$1/bin/activate" ]; then
        echo "there is no file $1/bin/activate here" >&2
        return 1
    fi
    __onward_folder=$1
    set --
    . "$__onward_folder/bin/activate"
}

for ((__onward_i = 0; __onward_i < ${#__onward_steps[@]}; __onward_i += 2)); do
    printf '%s\n' "$((__onward_i / 2))" >"$__onward_at"
    case ${__onward_steps[__onward_i]} in
        module) __onward_load "${__onward_steps[__onward_i + 1]}" ;;
        conda) __onward_conda "${__onward_steps[__onward_i + 1]}" ;;
        venv) __onward_venv "${__onward_steps[__onward_i + 1]}" ;;
        setup) eval "${__onward_steps[__onward_i + 1]}" ;;
    esac
    __onward_code=$?
    [ "$__onward_code" = 0 ] || exit "$__onward_code"
done
printf 'done\n' >"$__onward_at"
command -p env -0 >"$__onward_into"
"""
